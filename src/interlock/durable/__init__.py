"""Jobs: work with several effects that survives the death of its process. The only
importer of DBOS; hooks and servers over stdio never import this package.
"""
