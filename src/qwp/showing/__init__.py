"""Output for people: terminal text, progress bars, HTML and SVG."""
