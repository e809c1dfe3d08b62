"""The package ``heron``, which contained heronpy's modules in releases before 0.16."""

import heronpy as heronpy
