"""The spider: arguments become seeds, a response becomes a Page.

How a body is read is extraction/, which links are followed middlewares/.
"""
