"""Tests of the web page in a real browser: a Chromium of the system, which Playwright drives."""
