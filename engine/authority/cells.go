package authority

import (
	"slices"

	"lashd/rpc/protocol"
)

// CellRefusal returns why no code cells may run under a ceiling, as a sentence for the model; empty if they may. lashd never asks a
// person about a single cell. So if a requesting session uses another driver than this one, which has no cells, its work may not run
// any here. sandboxed means that the executor runs in a sandbox, inside that the workspace is in the roots of the ceiling.
func CellRefusal(c protocol.Ceiling, driver string, sandboxed, inside bool) string {
	other := slices.ContainsFunc(c.Policies, func(p protocol.Policy) bool { return p.Driver != driver })
	switch {
	case other:
		return "The code was not run: the session that requested this work does not run code."
	case c.NoTools:
		return "The code was not run: the session that requested this work has no tools."
	case c.ReadOnly:
		return "The code was not run: this work was requested in plan mode. Put the step into the plan; only a person can end plan mode."
	case c.Sandboxed && !sandboxed:
		return "The code was not run: a sandboxed plugin requested this work, and code runs outside the sandbox."
	case !inside:
		return "The code was not run: this workspace is outside the workspace of the session that requested the work."
	}
	return ""
}
