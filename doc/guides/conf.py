# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: the guides. `ninja -C build doc` builds them, devtools/test with warnings as errors."""
project = "Verbena"
copyright = "2026 The Verbena authors"
author = "The Verbena authors"
extensions = []
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "RDMA verbs on a network card made of software",
                      "fixed_sidebar": True}
html_static_path = []
