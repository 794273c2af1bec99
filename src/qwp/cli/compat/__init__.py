"""Commands that accept command lines of MUSE and VecMap and run them with methods of qwp."""
