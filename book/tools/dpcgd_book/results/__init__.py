"""Results of chapters: recorded, swept, kept on file and compared with what is on file."""
