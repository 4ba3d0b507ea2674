"""Where rows and files are kept."""
