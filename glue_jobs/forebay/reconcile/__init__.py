"""Files that S3 never told us of are found, and announced."""
