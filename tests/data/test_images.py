import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from jaxface.data import images
from jaxface.faces import geometry
from tests.reference.data_reference import box_mean
from tests.tolerances import assert_close


def grey(rng, height=24, width=16):
    return rng.integers(0, 256, (height, width), dtype=np.uint8)


@pytest.mark.parametrize("suffix", ["pgm", "png", "bmp", "tif", "gif"])
def test_a_lossless_grey_image_comes_back(tmp_path, rng, write_image, suffix):
    pixels = grey(rng)
    read = images.read_image(write_image(tmp_path / f"x.{suffix}", pixels))
    assert read.dtype == np.float32
    assert_close(read, pixels.astype(np.float32) / 255)


def test_color_and_its_luma(tmp_path, rng, write_image):
    pixels = rng.integers(0, 256, (8, 5, 3), dtype=np.uint8)
    path = write_image(tmp_path / "x.png", pixels)
    assert_close(images.read_image(path, color=True), pixels.astype(np.float32) / 255)
    luma = pixels @ np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(images.read_image(path) * 255, luma, atol=0.51)


def test_a_grey_file_read_in_color_has_three_equal_channels(tmp_path, rng, write_image):
    pixels = grey(rng)
    read = images.read_image(write_image(tmp_path / "x.pgm", pixels), color=True)
    assert read.shape == (24, 16, 3)
    for channel in range(3):
        assert_close(read[..., channel], pixels.astype(np.float32) / 255)


@pytest.mark.parametrize("color", [False, True])
def test_sixteen_bits_are_kept(tmp_path, rng, color):
    pixels = rng.integers(0, 65536, (7, 5), dtype=np.uint16)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    read = images.read_image(tmp_path / "x.png", color=color)
    assert_close(read[..., 0] if color else read, pixels.astype(np.float32) / 65535)


def test_transparent_parts_are_black(tmp_path):
    rgba = np.full((2, 2, 4), 200, np.uint8)
    rgba[..., 3] = [[0, 255], [255, 0]]
    Image.fromarray(rgba).save(tmp_path / "x.png")
    assert_close(images.read_image(tmp_path / "x.png"), np.float32([[0, 200], [200, 0]]) / 255)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_the_exif_orientation_is_applied(tmp_path, rng, orientation, suffix):
    upright = grey(rng, 6, 4)
    stored = {  # what a camera that is held so writes: the inverse of what the tag tells a viewer to do
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: np.rot90(upright),
        7: upright[::-1, ::-1].T,
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif)
    assert_close(images.read_image(path), upright.astype(np.float32) / 255)
    assert_close(images.read_image(path, crop=(1, 2, 5, 1)), upright[1:6, 2:3].astype(np.float32) / 255)


def test_a_float_image_with_nan_is_refused(tmp_path):
    pixels = np.full((3, 4), 0.5, np.float32)
    pixels[1, 2] = np.nan
    Image.fromarray(pixels).save(tmp_path / "x.tif")
    with pytest.raises(ValueError, match=r"x\.tif must hold values in \[0, 1\]; got from nan"):
        images.read_image(tmp_path / "x.tif")


def test_size_is_the_mean_of_the_pixels_whose_centres_lie_in_a_new_one(tmp_path):
    row = np.zeros((1, 9), np.uint8)
    row[0, 5] = 255  # its centre, 5.5, is the only one within (4.5, 6], the fourth of six pixels
    Image.fromarray(row).save(tmp_path / "x.png")
    np.testing.assert_allclose(images.read_image(tmp_path / "x.png", size=(1, 6)) * 255, [[0, 0, 0, 255, 0, 0]])


def test_size_is_an_area_mean_when_ratios_are_whole(tmp_path, rng, write_image):
    pixels = grey(rng, 24, 16)
    path = write_image(tmp_path / "x.png", pixels)
    read = images.read_image(path, size=(8, 4))
    np.testing.assert_allclose(read * 255, box_mean(pixels, (8, 4)), atol=1.01)
    cropped = images.read_image(path, size=(5, 4), crop=(2, 4, 20, 12))
    np.testing.assert_allclose(cropped * 255, box_mean(pixels[2:22, 4:16], (5, 4)), atol=1.01)


def test_a_crop_is_that_of_the_faces_room(tmp_path, rng, write_image):
    path = write_image(tmp_path / "x.png", grey(rng, 9, 8))
    whole = images.read_image(path)
    window = geometry.crop(whole, top=2, left=1, height=3, width=6)
    assert_close(images.read_image(path, crop=(2, 1, 3, 6)), np.asarray(window))


def test_size_grows_without_new_extremes(tmp_path, rng, write_image):
    pixels = grey(rng, 4, 4)
    read = images.read_image(write_image(tmp_path / "x.png", pixels), size=(9, 7))
    assert read.shape == (9, 7)
    assert read.min() >= pixels.min() / 255 - 1e-6
    assert read.max() <= pixels.max() / 255 + 1e-6


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_large_jpeg_decoded_small_is_the_mean_of_its_pixels(tmp_path, rng, color, orientation):
    coarse = rng.integers(60, 200, (6, 8), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((256, 192), Image.Resampling.BICUBIC))
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(smooth).save(tmp_path / "x.jpg", quality=95, exif=exif)
    size = (12, 16) if orientation == 1 else (16, 12)
    expected = box_mean(smooth if orientation == 1 else np.rot90(smooth, -1), size)
    read = images.read_image(tmp_path / "x.jpg", size=size, color=color)
    np.testing.assert_allclose((read[..., 0] if color else read) * 255, expected, atol=1.5)


def test_a_jpeg_decoded_small_keeps_the_detail_that_was_asked_for(tmp_path, rng):
    coarse = rng.integers(60, 200, (24, 32), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((256, 192), Image.Resampling.BICUBIC))
    Image.fromarray(smooth).save(tmp_path / "x.jpg", quality=98)
    read = images.read_image(tmp_path / "x.jpg", size=(48, 64))
    np.testing.assert_allclose(read * 255, box_mean(smooth, (48, 64)), atol=2.0)


def test_of_an_animation_the_first_frame_is_read(tmp_path):
    frames = [Image.fromarray(np.full((3, 3), level, np.uint8)) for level in (50, 200)]
    frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:])
    assert_close(images.read_image(tmp_path / "x.gif"), np.full((3, 3), 50 / 255, np.float32))


def test_many_images_are_the_single_ones_whatever_the_number_of_threads(tmp_path, rng, write_image):
    paths = [write_image(tmp_path / f"{i}.png", grey(rng)) for i in range(9)]
    expected = np.stack([images.read_image(path) for path in paths])
    for workers in (1, 3):
        np.testing.assert_array_equal(images.load_images(paths, workers=workers), expected)
    assert images.load_images(paths, size=(6, 4), color=True).shape == (9, 6, 4, 3)


def png_claiming(path, width, height):
    """A PNG of a few bytes whose header promises a large image."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")))
    return path


@pytest.mark.parametrize("side", [8_000, 10_000, 60_000], ids=["our limit", "Pillow's warning", "Pillow's error"])
def test_a_decompression_bomb_is_refused_before_decoding(tmp_path, side):
    path = png_claiming(tmp_path / "bomb.png", side, side)
    with pytest.raises(ValueError, match=r"bomb\.png is too large to decode: .*the limit is 50000000 pixels"):
        images.read_image(path)


def test_the_limit_can_be_set(tmp_path, rng, write_image):
    path = write_image(tmp_path / "x.png", grey(rng, 10, 10))
    assert images.read_image(path, max_pixels=100).shape == (10, 10)
    with pytest.raises(ValueError, match=r"x\.png is too large to decode: 10 x 10 pixels; the limit is 99 pixels"):
        images.read_image(path, max_pixels=99)


@pytest.mark.parametrize("damage", ["text", "empty", "truncated", "bytes"])
def test_what_does_not_decode_is_named(tmp_path, rng, write_image, damage):
    path = write_image(tmp_path / "x.png", grey(rng))
    whole = path.read_bytes()
    flipped = whole[:60] + bytes([whole[60] ^ 255]) + whole[61:]
    path.write_bytes({"text": b"hello", "empty": b"", "truncated": whole[:80], "bytes": flipped}[damage])
    with pytest.raises(ValueError, match=r"x\.png does not decode as an image"):
        images.read_image(path)


def test_formats_beyond_the_list_are_not_tried(tmp_path, rng):
    Image.fromarray(grey(rng)).save(tmp_path / "x.png", format="PCX")
    with pytest.raises(ValueError, match="does not decode"):
        images.read_image(tmp_path / "x.png")


def test_values_out_of_range_are_refused(tmp_path):
    Image.fromarray(np.float32([[0.5, 3.0]])).save(tmp_path / "x.tif")
    with pytest.raises(ValueError, match=r"x\.tif must hold values in \[0, 1\]; got from 0.5 to 3"):
        images.read_image(tmp_path / "x.tif")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"An image must be a file; .*none\.png does not exist"):
        images.read_image(tmp_path / "none.png")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        images.read_image(tmp_path)


def test_errors_of_crop_and_size(tmp_path, write_image):
    path = write_image(tmp_path / "x.png")
    with pytest.raises(ValueError, match=r"crop must lie inside .*x\.png, 6 x 4 pixels; got rows 3 to 7"):
        images.read_image(path, crop=(3, 0, 4, 4))
    with pytest.raises(ValueError, match="rows 0 to 6 and columns 2 to 5"):
        images.read_image(path, crop=(0, 2, 6, 3))
    for wrong in [(-1, 0, 2, 2), (0, 0, 0, 4), (0, 0, 2)]:
        with pytest.raises(ValueError, match=r"crop must be \(top, left, height, width\).*; got"):
            images.read_image(path, crop=wrong)
    with pytest.raises(ValueError, match=r"size must be \(height, width\)"):
        images.read_image(path, size=(0, 4))


def test_images_of_different_sizes_name_two_and_suggest_size(tmp_path, write_image):
    paths = [write_image(tmp_path / "a.png"), write_image(tmp_path / "b.png", np.zeros((5, 9), np.uint8))]
    with pytest.raises(ValueError, match=r"a\.png is 6x4 and .*b\.png is 5x9\. Pass size=\(height, width\)"):
        images.load_images(paths)
    assert images.load_images(paths, size=(4, 4)).shape == (2, 4, 4)


def test_no_paths():
    with pytest.raises(ValueError, match="at least one image"):
        images.load_images([])
