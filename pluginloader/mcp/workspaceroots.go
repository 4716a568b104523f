package mcp

import (
	"cmp"
	"context"
	"net/url"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// capabilities returns what lashd declares to a server. Only a program on this machine learns of workspaces: an address of the network
// cannot use their paths.
func (l *life) capabilities() *sdk.ClientCapabilities {
	c := &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}}
	if l.server.end.URL == "" {
		c.RootsV2 = &sdk.RootCapabilities{} //lint:ignore SA1019 servers of the versions that lashd begins with use roots
	}
	if l.samples {
		c.Sampling = &sdk.SamplingCapabilities{} //lint:ignore SA1019 without tools; see sampling.go
	}
	return c
}

// roots answers roots/list: the workspace of the sandbox in which the server runs, or else that of the session in whose call the server
// asks, or else the workspace that the server belongs to. It is empty if the server belongs to no workspace and runs for no session, or if
// calls of several turns are in progress.
func (l *life) roots(ctx context.Context) sdk.Result {
	r := &sdk.ListRootsResult{Roots: []*sdk.Root{}} //lint:ignore SA1019 as above
	dir := l.server.end.workspace
	if c, ok := ctx.Value(inflightKey{}).(*inflight); ok && c != nil {
		dir = cmp.Or(c.Cwd, dir)
	} else if c := l.calls.sole(); c != nil {
		dir = cmp.Or(c.Cwd, dir)
	}
	if b := l.server.end.Box; b != nil {
		dir = b.Workspace
	}
	if dir != "" {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		r.Roots = append(r.Roots, &sdk.Root{URI: u.String(), Name: filepath.Base(dir)}) //lint:ignore SA1019 as above
	}
	return r
}
