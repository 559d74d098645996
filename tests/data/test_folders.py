import os
import shutil

import numpy as np
import pytest

from jaxface.data import folders
from tests.tolerances import assert_close


def test_people_and_files_stand_in_natural_order(people):
    data = folders.load(people)
    assert data.names == ("anna", "ben", "s2", "s10")
    assert data.ids.tolist() == [0, 0, 0, 1, 1, 2, 3]
    assert data.ids.dtype == np.int32
    assert data.files == (
        "anna/1.png",
        "anna/2.png",
        "anna/3.png",
        "ben/1.png",
        "ben/2.png",
        "s2/1.png",
        "s10/1.png",
    )
    assert data.ignored == ()
    assert_close(data.images[:, 0, 0], np.arange(10, 80, 10, dtype=np.float32) / 255)


def test_what_is_no_image_is_ignored_and_reported(people, write_image):
    (people / "README.txt").write_text("x")
    (people / "anna" / "notes.txt").write_text("x")
    write_image(people / "anna" / ".hidden.png")
    write_image(people / ".cache" / "1.png")
    write_image(people / "ben" / "nested" / "1.png")
    (people / "empty").mkdir()
    listing = folders.scan(people)
    assert len(listing.files) == 7
    expected = {"README.txt", "anna/notes.txt", "anna/.hidden.png", ".cache", "ben/nested", "empty"}
    assert set(listing.ignored) == expected
    assert len(listing.ignored) == len(expected)


def test_a_listing_reads_the_rows_asked_for(people):
    listing = folders.scan(people)
    part = folders.read(listing, rows=[4, 1], size=(3, 2))
    assert part.images.shape == (2, 3, 2)
    assert part.files == ("ben/2.png", "anna/2.png")
    assert part.ids.tolist() == [1, 0]
    assert part.names == listing.names
    assert_close(part.images[:, 0, 0], np.float32([50, 20]) / 255)


def test_upper_case_suffixes_are_images(tmp_path, write_image):
    write_image(tmp_path / "a" / "1.PNG")
    write_image(tmp_path / "b" / "1.Jpg")
    assert folders.scan(tmp_path).files == ("a/1.PNG", "b/1.Jpg")


def test_missing_root_and_a_file_as_root(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"root must be a folder; .*nowhere does not exist"):
        folders.scan(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileNotFoundError, match="is a file"):
        folders.scan(tmp_path / "file")


def test_empty_folder(tmp_path):
    with pytest.raises(ValueError, match=r"is empty\. Expected .*<person>/<image>"):
        folders.scan(tmp_path)


def test_folder_without_images(tmp_path):
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "x.txt").write_text("x")
    with pytest.raises(ValueError, match=r"no folder with images; 2 other entries, such as 'anna/x\.txt'"):
        folders.scan(tmp_path)


def test_images_directly_in_the_root_get_a_hint(tmp_path, write_image):
    write_image(tmp_path / "anna1.png")
    with pytest.raises(ValueError, match="folder of their own"):
        folders.scan(tmp_path)


def test_one_person_only(tmp_path, write_image):
    write_image(tmp_path / "anna" / "1.png")
    with pytest.raises(ValueError, match="must hold at least 2 people; got 1: anna"):
        folders.load(tmp_path)
    assert folders.load(tmp_path, min_people=1).names == ("anna",)


def test_a_damaged_image_is_named(people):
    (people / "ben" / "2.png").write_bytes(b"not an image")
    with pytest.raises(ValueError, match=r"ben/2\.png does not decode"):
        folders.load(people)


def test_links_that_leave_the_root_are_refused(people, tmp_path, write_image):
    outside = write_image(tmp_path / "private" / "1.png")
    (people / "ben" / "link.png").symlink_to(outside)
    with pytest.raises(ValueError, match=r"symbolic link: 'ben/link\.png' leads outside the data root"):
        folders.scan(people)
    (people / "ben" / "link.png").unlink()
    (people / "carl").symlink_to(tmp_path / "private", target_is_directory=True)
    with pytest.raises(ValueError, match="'carl' leads outside"):
        folders.scan(people)


def test_links_inside_the_root_and_a_linked_root_are_fine(people, tmp_path):
    (people / "ben" / "3.png").symlink_to(people / "ben" / "1.png")
    (tmp_path / "alias").symlink_to(people, target_is_directory=True)
    assert "ben/3.png" in folders.scan(tmp_path / "alias").files


def test_links_to_themselves_are_named(people):
    for name in ("loop", "anna/loop.png"):
        (people / name).symlink_to(name.rpartition("/")[2])
        with pytest.raises(ValueError, match=rf"symbolic link: .*{name} cannot be opened: .*Remove it, or replace"):
            folders.scan(people)
        (people / name).unlink()
    (people / "anna" / "9.png").symlink_to("nothing.png")
    assert folders.scan(people).ignored == ("anna/9.png",)


def test_names_that_are_not_utf_8(people):
    """Refused where a report would have to name them, and shown as escapes where they are left out."""
    shown = os.fsencode(people)
    for name in (b"anna/\xff.png", b"d\xe4n/1.png"):
        os.makedirs(os.path.dirname(os.path.join(shown, name)), exist_ok=True)
        shutil.copy(people / "anna" / "1.png", os.path.join(shown, name))
        with pytest.raises(
            ValueError, match=r"(An image in|A folder of images).* must have a name in UTF-8; got .*\\x.*Rename it"
        ) as caught:
            folders.scan(people)
        assert str(caught.value).isprintable()
        os.unlink(os.path.join(shown, name))
    os.rmdir(os.path.join(shown, b"d\xe4n"))
    open(os.path.join(shown, b"anna/\xff.txt"), "wb").close()
    assert folders.scan(people).ignored == ("anna/\\xff.txt",)


def test_messages_show_no_control_characters(people):
    (people / "anna" / "\x1b]0;x\x07.png").write_bytes(b"x")
    with pytest.raises(
        ValueError, match=r"anna/\\x1b\]0;x\\x07\.png does not decode as an image: .* Replace it"
    ) as caught:
        folders.load(people)
    assert str(caught.value).isprintable()


def test_a_folder_that_may_not_be_listed(people, monkeypatch):
    is_allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "ben" not in str(path) and is_allowed(path, mode))
    with pytest.raises(PermissionError, match=r"A folder of images, .*ben, may not be read by this user"):
        folders.scan(people)


def test_a_flat_folder_where_nobody_needs_labels(tmp_path, write_image):
    for name in ("10.png", "2.png", "notes.txt"):
        write_image(tmp_path / name) if name.endswith("png") else (tmp_path / name).write_text("x")
    listing = folders.scan(tmp_path, min_people=0)
    assert (listing.files, listing.ids.tolist(), listing.names) == (("2.png", "10.png"), [-1, -1], ())
    assert listing.ignored == ("notes.txt",)
    assert folders.load(tmp_path, min_people=0).images.shape == (2, 6, 4)
    with pytest.raises(ValueError, match=r"holds no folder with images.*Put the images of each person into a folder"):
        folders.scan(tmp_path, min_people=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty is empty"):
        folders.scan(tmp_path / "empty", min_people=0)
    write_image(tmp_path / "ann" / "1.png")
    assert folders.scan(tmp_path, min_people=0).files == ("ann/1.png",)  # the photos beside the folder are left out
