"""Those who are told what happens: logs now, metrics and traces beside them."""
