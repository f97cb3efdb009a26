"""Textual widgets that draw rows and know nothing of where they come from.

They import textual, rich, the standard library and gputop.themes, nothing else. Each module is imported by
its own name, so that a first frame pays only for what it shows.

* ``cells``: text with roles, cut and padded to cells. ``styles``: roles to colours.
* ``canvas``: the base, which writes only changed cells. ``line_diff``, ``left_crop``, ``sgr``: how.
* ``line_table`` with ``columns``, ``row_order``, ``scroll_mark``: the table.
* ``levels``, ``spark``, ``bars``, ``chart``, ``heatmap``: numbers as pictures.
* ``status_line``, ``text_view``, ``prompt``, ``dialog``, ``quiet_screen``: the rest of a screen.
"""
