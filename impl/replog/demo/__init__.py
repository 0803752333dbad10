"""`replog demo`: a cluster on real files that loses its leader while one watches."""
