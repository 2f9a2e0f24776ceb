def write_pages(folder, page, scale):
    return page
