"""Systems of others that a team may use already: an Agent Mail server and a Beads tracker."""
