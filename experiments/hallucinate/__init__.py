"""The study of hallucination: a face from its eye region.

faces      people in folds, and which pixels are seen
methods    every method behind one interface, with settings chosen on people who were held out
matching   KCFA, and all pairs of originals and reconstructions, counted
measurements, bandwidths, kernels
           other measurements than the eyes; narrower bandwidths and their inverses; dictionaries of a kernel
streaming  a dictionary from one pass over a stream, killed and resumed at will
claims     which statements of the paper hold on these faces
found      what all folds found
neutral    how much variation within people the reconstructions keep
report     tables, galleries and figures; pairs_report, paper_report, growth_report and stream_report write some of
           its sections
study      the stages, one after the other
"""
