"""The pages: parse → one use case → render. Only `aiflow up` imports them."""
