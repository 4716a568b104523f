package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"lashd/engine/provider"
)

// Check asks the server for its list of models, which costs nothing. It returns nil if the server accepts the request or has no
// such list, and otherwise an *provider.Error that says what is wrong and what to do.
func (e *Endpoint) Check(ctx context.Context) error {
	_, err := e.Models(ctx)
	return err
}

// Models is Check, and returns the ids of the models that the server lists. A list of another form has none.
func (e *Endpoint) Models(ctx context.Context) ([]string, error) {
	if e.invalid != nil {
		return nil, e.invalid
	}
	ids, err := e.models(ctx)
	if err != nil {
		return nil, e.mask.Error(err)
	}
	return ids, nil
}

// models is Models with errors that may still have keys in them. Servers without a list of models answer 404 or 405. A silent
// server is waited for until ctx is done.
func (e *Endpoint) models(ctx context.Context) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.target(e.dialect.ModelPath), nil)
	if err != nil {
		return nil, fmt.Errorf("check model server: %w", err)
	}
	e.identify(req.Header)
	asking, cancel := context.WithCancelCause(ctx)
	a := &answer{endpoint: e, cancel: cancel, ctx: asking, where: http.MethodGet + " " + e.shown + e.dialect.ModelPath}
	defer cancel(nil)
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 2:
		return listed(resp.Body), nil
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusMethodNotAllowed:
		return nil, nil
	case resp.StatusCode/100 == 3:
		return nil, a.redirected(resp, resp.Header.Get("Location"))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRaw))
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	return nil, a.classify(resp.StatusCode, parseFailure(data))
}

// maxList bounds a list of models, in bytes.
const maxList = 4 << 20

// listed returns the ids in a list of models: data[].id or, of Gemini, models[].name.
func listed(body io.Reader) []string {
	type model struct{ ID, Name string }
	var list struct{ Data, Models []model }
	if json.NewDecoder(io.LimitReader(body, maxList)).Decode(&list) != nil {
		return nil
	}
	var ids []string
	for _, m := range append(list.Data, list.Models...) {
		if id := cmp.Or(m.ID, strings.TrimPrefix(m.Name, "models/")); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

var _ provider.Checker = (*Endpoint)(nil)
