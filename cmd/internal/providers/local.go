package providers

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	localLimit = 300 * time.Millisecond // for a server on this machine to list its models
	mostList   = 1 << 20                // bytes of such a list
)

// Local is a model server that runs on this machine.
type Local struct {
	Name    string // of its preset
	Title   string
	BaseURL string
	Models  []string // ids
	// KeyWanted: the server answers, but lists its models only for a key. Models is then empty.
	KeyWanted bool
}

// FindLocal asks the presets of local servers for their models, at their usual addresses or those of the configuration, and returns those
// that answer. It asks only addresses of this machine, and takes 300 ms at most. Call it when a person asks for local servers.
func FindLocal(ctx context.Context, configured map[string]Provider) []Local {
	ctx, cancel := context.WithTimeout(ctx, localLimit)
	defer cancel()
	names := slices.DeleteFunc(Presets(), func(name string) bool { return !presets[name].Local })
	found := make([]Local, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		p := configured[name].over(Provider{API: presets[name].API, BaseURL: presets[name].BaseURL})
		wg.Go(func() {
			found[i] = Local{Name: name, Title: presets[name].Title, BaseURL: p.BaseURL}
			found[i].Models, found[i].KeyWanted = listModels(ctx, p.BaseURL)
		})
	}
	wg.Wait()
	return slices.DeleteFunc(found, func(l Local) bool { return len(l.Models) == 0 && !l.KeyWanted })
}

// listModels returns the ids of the models of a server on this machine, or that it wants a key; nothing if it is on another machine or
// does not answer. It goes through no proxy and follows no redirect, so nothing leaves this machine.
func listModels(ctx context.Context, base string) (ids []string, keyWanted bool) {
	if !loopback(base) {
		return nil, false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/models", nil)
	if err != nil {
		return nil, false
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return nil, true
	}
	var list struct{ Data []struct{ ID string } }
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, mostList)).Decode(&list) != nil {
		return nil, false
	}
	for _, m := range list.Data {
		if m.ID != "" {
			ids = append(ids, m.ID)
		}
	}
	return ids, false
}

// loopback reports whether a URL names this machine.
func loopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
