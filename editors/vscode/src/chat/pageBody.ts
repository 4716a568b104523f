/** pageBody is what the page of a chat contains before its script fills it. */
export const pageBody = `<header id="head"></header>
<main id="scroller" tabindex="-1"><section id="welcome" hidden></section><div id="list" role="feed" aria-label="Conversation"></div></main>
<div id="state" role="status"></div>
<section id="asked" aria-label="Open questions" aria-live="assertive"></section>
<section id="queue" aria-label="Queued inputs"></section>
<section id="compaction" aria-label="Compaction" aria-live="polite" hidden></section>
<section id="context" aria-label="Context window" hidden></section>
<footer id="composer"></footer>`;

/** newChatBody returns what the page of an input that starts a session contains. */
export const newChatBody = (sendOnEnter: boolean) => `<main id="scroller"><section id="welcome"><h1>New session</h1>
<p>The agent works with the files of this folder and runs commands. You can undo each turn.</p>
<p><a href="command:lashd.findSession">Find a session\u2026</a></p></section></main>
<footer id="composer" data-enter="${sendOnEnter}"></footer>`;
