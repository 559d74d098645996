"""The study of random feature maps.

estimates     kernel matrices estimated by maps of growing size
cost          time and memory against the dimension, beside a dense product
inverse       the way back to the image, in range and far beyond
ridge         identification by kernel ridge regression, with the exact kernel and through the maps
learning      S, G and B of Fastfood as parameters, trained with Adam
report        the page: maps, their cost and their inverses
applications  its sections on identification and learning
pictures      figures that the tour shows as well
study         the stages, one after the other
"""
