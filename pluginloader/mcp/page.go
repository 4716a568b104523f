package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// Limits of pages that servers ask people to open.
const (
	maxRequired = 8       // that one call may require
	maxPageURL  = 4 << 10 // bytes of an address
)

// openPage asks a person to open a page of the server's choice. The client opens it; lashd never does.
func (l *life) openPage(ctx context.Context, c *inflight, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	u, err := pageURL(p.URL, l.server.end.URL)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	prompt := fmt.Sprintf("The MCP server %s asks you to open a page of the host %s. Open it only if you trust this host.", l.server.end.label, u.Host)
	if said := strings.Join(strings.Fields(cut(p.Message, 1000)), " "); said != "" {
		prompt += fmt.Sprintf(" The server says: %q", said)
	}
	answer, err := l.ask(ctx, c, tool.Question{Prompt: fmt.Sprintf("%s\n\nHost: %s\nAddress: %s", prompt, u.Host, u), URL: u.String()})
	switch {
	case err != nil:
		l.server.warn("its question got no answer: " + err.Error())
		return &sdk.ElicitResult{Action: dismissed}, nil
	case answer.Choice == protocol.ChooseOpen:
		return &sdk.ElicitResult{Action: accepted}, nil
	}
	return elicited(answer)
}

// pageURL checks an address that people are asked to open: others must not read the page on the way, and the host must be the one that
// people read.
func pageURL(address, server string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > maxPageURL || u.Hostname() == "":
		return nil, errors.New("the url is invalid or longer than 4096 bytes")
	case u.Scheme != "https" && !(u.Scheme == "http" && local(u.Hostname()) && (server == "" || trusted(u, server))):
		return nil, errors.New("the url must begin with https://, or be on the machine of lashd like the server")
	case u.User != nil:
		return nil, errors.New("the url must have no user name")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the host of the url must be ASCII")
	}
	return u, nil
}

// required asks for the pages that a server requires before it takes a call, and waits until the server says that the person is done. It
// returns a *child.Error for the model if the call cannot be sent again.
func (l *life) required(ctx context.Context, c *inflight, refusal *jsonrpc.Error) error {
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	err := json.Unmarshal(refusal.Data, &data)
	if n := len(data.Elicitations); err == nil && (n == 0 || n > maxRequired) {
		err = fmt.Errorf("it names %d pages, and must name 1 to %d", n, maxRequired)
	}
	for i := 0; err == nil && i < len(data.Elicitations); i++ {
		err = l.visited(ctx, c, data.Elicitations[i])
	}
	if err == nil {
		return nil
	}
	return &child.Error{Plugin: l.server.end.label, Code: child.Failed, Err: l.server.clean(fmt.Errorf("the server requires the user to open a page before the call: %w", err))}
}

// visited asks for one page, and waits until the server says that the person is done.
func (l *life) visited(ctx context.Context, c *inflight, p *sdk.ElicitParams) error {
	done, forget := l.pages.await(p.ElicitationID)
	defer forget()
	r, err := l.openPage(ctx, c, p)
	switch {
	case err != nil:
		return err
	case r.Action != accepted:
		return errors.New("the user did not open it")
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("the user opened it, but the server has not reported that the user is done; repeat the call later")
	}
}

// pages are those whose end a call waits for, by their ids. The zero value is ready. It is safe for concurrent use.
type pages struct {
	mu   sync.Mutex
	done map[string]chan struct{}
}

// await returns a channel that is closed when the server reports that a page is done. The caller calls forget.
func (p *pages) await(id string) (done <-chan struct{}, forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = map[string]chan struct{}{}
	}
	ch := make(chan struct{})
	p.done[id] = ch
	return ch, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.done, id)
	}
}

// complete handles notifications/elicitation/complete. A page that no call waits for is ignored: its call goes on without lashd.
func (p *pages) complete(_ context.Context, r *sdk.ElicitationCompleteNotificationRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Params != nil && p.done[r.Params.ElicitationID] != nil {
		close(p.done[r.Params.ElicitationID])
		delete(p.done, r.Params.ElicitationID)
	}
}
