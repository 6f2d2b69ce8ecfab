"""Write the generated reference pages."""
