"""Files, whoever owns them: confined paths, whole replacement, JSON patches, watching. Knows no
projects and no formats of ours.
"""
