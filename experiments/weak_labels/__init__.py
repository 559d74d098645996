"""The study of weak labels.

methods     every method behind one interface, and the settings it may choose from
draws       random groupings of a set of faces: all of them fitted in one compiled call; choosing settings
joint       Joint Bayes with groups as people, alone and after NP-PER
curves      RCA against its PCA and a ridge; the scatter that groups miss
clustering  k-means after a projection: purity and accuracy
tracks      groups cut from videos
films       videos of one's own: frames in folders, faces and landmarks by a detector
many        many groups: random features in the place of a kernel
report      tables and figures of images
videos      tables and figures of videos
study       the stages, one after the other
"""
