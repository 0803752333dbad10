"""`replog demo`: a cluster on real files that loses its leader during the demo."""
