"""Who got what, and what would another ceiling or floor have given: decisions by any of their words, over time, compared."""

from horde_policy.ui import review_decisions
from horde_policy.ui.headline import show_headline
from horde_policy.ui.review_page import open_review, show_data, show_looked_at
from horde_policy.views.review_headlines import decisions_headline

opened = open_review()
show_headline(decisions_headline(opened.looked_at(opened.exported)))
show_looked_at(opened)
review_decisions.show_split(opened)
review_decisions.show_comparison(opened)
review_decisions.show_figures(opened)
review_decisions.show_what_if(opened)
show_data(opened)
