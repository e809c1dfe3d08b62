"""The name of heronpy's modules in releases before 0.16."""

import heronpy as heronpy
