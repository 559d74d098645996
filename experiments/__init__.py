"""Studies that run and report: `python -m experiments.NAME --config=configs/NAME.py --workdir=FOLDER`.

tour          the five systems on one set of faces
verifier      a verifier of your own: fitted, chosen, calibrated, measured and saved
verify        Joint Bayes with transfer: does a source model help when few target people are known?
verify_lfw    the LFW protocol with Joint Bayes
encoder       an encoder trained through the ratio, and gradients back to the pixels
finetune      gradient descent on the scores, from the model that EM found
quality       weights of photos from their quality, where photos are damaged by known amounts
people        people out of a heap of photos without names
score         pairs and probes with a saved verifier
evaluate      scores of any system: error rates, calibration, comparisons
embed         photographs as embeddings
committee     random-sampling LDA committees against single LDAs
weak_labels   NP-PER and RCA: recognition and clusters from small groups without names
retrieve      photographs of a class, after learning from small groups
kernel_maps   random feature maps: accuracy, cost, the way back, learning
hallucinate   a face from its eye region
super_vector  super vectors against Fisher vectors, and retrieval across views

A study is a folder: `study.run(config, workdir) -> results` in `study.py`, tables and figures in `report.py`, its parts
beside them, and `__main__.py`, the command. What studies share is in `common`.
"""
