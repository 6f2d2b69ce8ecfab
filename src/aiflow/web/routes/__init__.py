"""The pages, one room each: parse → one use case → draw."""
