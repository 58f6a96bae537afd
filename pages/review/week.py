"""What did the production week show: findings as sentences, each with the page behind it; the report."""

from horde_policy.ui import review_week
from horde_policy.ui.headline import show_headline
from horde_policy.ui.review_page import open_review, show_data, show_not_narrowed
from horde_policy.views.review_headlines import week_headline
from horde_policy.views.text import escape_markdown

opened = open_review()
review_week.stop_without_counts(opened)
week = review_week.reviewed(opened)
show_headline(escape_markdown(week_headline(week)))
show_not_narrowed(opened)
review_week.show_findings(opened, week)
review_week.show_questions(week)
review_week.show_changes(week)
show_data(opened)
