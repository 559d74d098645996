"""Fine-tuning Joint Bayes through its differentiable score.

study   one stage: the losses along the way, and the measures of the step that held-out people choose
report  tables and figures
"""
