"""Photographs as embeddings.

study   chunks of photos: the files that come out
photos  folders of people, flat folders, and the `.bin` of verification sets
faces   a face of each photo, or all of them: found, aligned and described
report  the page
"""
