"""The study of weak labels.

methods     every method behind one interface, and the settings it may choose from
draws       random groupings of a set of faces: all of them fitted in one compiled call; choosing settings
clustering  k-means after a projection: purity and accuracy
tracks      groups cut from simulated videos
report      tables and figures
study       the stages, one after the other
"""
