"""Files, whoever owns them: confined paths, whole replacement, JSON patches, watching. Knows no
project and no format of ours.
"""
