package pluginloader

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// ErrManyServers means that several plugins have a server of the name.
var ErrManyServers = errors.New("several plugins have an MCP server of that name; name the plugin")

// Servers are the MCP servers of plugins, for people who log in to them or restart them. Its methods are safe for concurrent use.
type Servers struct{ loader *Loader }

// ServersOf returns the servers of the plugins of a loader.
func ServersOf(l *Loader) *Servers { return &Servers{l} }

// Login implements mcp/login: it starts a login to a server of a plugin that is loaded.
func (s *Servers) Login(ctx context.Context, p *protocol.MCPLoginParams) (*protocol.MCPLoginResult, error) {
	part, err := s.serverPart(ctx, &p.MCPServerParams)
	if err != nil {
		return nil, err
	}
	a, err := part.BeginLogin(ctx, p.Server, p.Redirect)
	if err != nil {
		return nil, err
	}
	return &protocol.MCPLoginResult{LoginID: a.ID, URL: a.URL, Redirect: a.Redirect, Parties: a.Parties}, nil
}

// FinishLogin implements mcp/finishLogin. The server works when it returns without an error.
func (s *Servers) FinishLogin(ctx context.Context, p *protocol.MCPFinishLoginParams) (*protocol.Empty, error) {
	return &protocol.Empty{}, s.loader.servers.FinishLogin(ctx, p.LoginID, p.Address)
}

// CancelLogin implements mcp/cancelLogin.
func (s *Servers) CancelLogin(_ context.Context, p *protocol.MCPCancelLoginParams) (*protocol.Empty, error) {
	s.loader.servers.CancelLogin(p.LoginID)
	return &protocol.Empty{}, nil
}

// Logout implements mcp/logout.
func (s *Servers) Logout(ctx context.Context, p *protocol.MCPServerParams) (*protocol.MCPLogoutResult, error) {
	part, err := s.serverPart(ctx, p)
	if err != nil {
		return nil, err
	}
	had, err := part.Logout(ctx, p.Server)
	return &protocol.MCPLogoutResult{Had: had}, err
}

// Restart implements mcp/restart.
func (s *Servers) Restart(ctx context.Context, p *protocol.MCPServerParams) (*protocol.MCPRestartResult, error) {
	part, err := s.serverPart(ctx, p)
	if err != nil {
		return nil, err
	}
	status, err := part.Restart(ctx, p.Server)
	if err != nil {
		return nil, err
	}
	return &protocol.MCPRestartResult{Server: servers([]mcp.ServerStatus{status})[0]}, nil
}

// serverPart returns the servers of the plugin that has a server. Only plugins that are loaded count, so an untrusted one gets nothing.
func (s *Servers) serverPart(ctx context.Context, p *protocol.MCPServerParams) (*mcp.Part, error) {
	l := s.loader
	set, err := l.setOf(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	var found []*mcp.Part
	for _, e := range l.entries(set) {
		l.mu.Lock()
		u := e.shown
		l.mu.Unlock()
		if u == nil || u.servers == nil || p.Plugin != "" && u.name() != p.Plugin {
			continue
		}
		if slices.ContainsFunc(u.servers.Status(), func(s mcp.ServerStatus) bool { return s.Name == p.Server }) {
			found = append(found, u.servers)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w %s; lash mcp lists the servers", mcp.ErrNoServer, p.Server)
	case 1:
		return found[0], nil
	}
	return nil, ErrManyServers
}
