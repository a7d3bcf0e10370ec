"""Systems of others that a team may use already: forges, an Agent Mail server, a Beads tracker."""
