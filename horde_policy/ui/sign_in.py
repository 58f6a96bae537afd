"""Sign-in by OpenID Connect, where the secrets file has a section ``auth``; without one whoever reaches the dashboard sees it.

A secrets file that is there and cannot be read may ask for one, so nobody sees anything until it can be read.
"""

import streamlit as st

from horde_policy.sources.secrets_file import unreadable_secrets
from horde_policy.views.text import escape_markdown

__all__ = ["require_sign_in", "sign_in_configured"]


def sign_in_configured() -> bool:
    """Tell whether this deployment asks for a sign-in."""
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def require_sign_in() -> None:
    """Show the sign-in and end the run, unless nobody has to sign in or somebody has.

    Call it after the navigation is registered and before anything of a page is drawn or asked: a link to any page ends here, too.
    """
    unreadable = unreadable_secrets(st.config.get_option("secrets.files"))
    if unreadable:
        st.title("Whether to sign in cannot be read", anchor=False)
        st.markdown(
            "A sign-in may be configured on this server, but the file that says so cannot be read. So nothing is shown until the "
            "file can be read or is taken away, and the app started again."
        )
        for problem in unreadable:
            st.error(escape_markdown(problem.text), icon=":material/lock:")
        st.stop()
    if not sign_in_configured():
        return
    if st.user.get("is_logged_in"):
        name = st.user.get("name") or st.user.get("email") or "signed in"
        with st.sidebar:
            st.caption(escape_markdown(str(name)))
            st.button("Sign out", key="shared.sign_out", type="tertiary", on_click=st.logout)
        return
    st.title("Please sign in", anchor=False)
    st.markdown("This dashboard is for people of this organisation.")
    st.button("Sign in", key="shared.sign_in", type="primary", on_click=st.login)
    st.stop()
