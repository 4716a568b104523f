package process

import (
	"context"
	"fmt"

	"lashd/engine/tool"
)

// toolsChanged handles the plugin's notice that its tools changed. It runs on the reader's
// goroutine and fetches the list in the background. If another notice arrives during that, the list
// is fetched once more.
func (i *instance) toolsChanged(ctx context.Context, l *life) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.place
	switch {
	case s == nil || s.life != l || !i.factory.config.Contributes.Changing:
	case s.fetching:
		s.again = true
	default:
		s.fetching = true
		i.factory.running.Go(func() { i.fetch(ctx, s) })
	}
}

// fetch fetches the list until no notice arrived in between. If it fails, the tools stay as they
// were and the failure is logged. It runs on its own goroutine.
func (i *instance) fetch(ctx context.Context, s *seat) {
	for again := true; again; {
		list, err := i.fetched(ctx, s)
		if again = i.listed(s, list, err); err != nil {
			i.factory.config.Log.Warn("the plugin's new list of tools was rejected", "session", i.build.SessionID, "error", err)
		} else if tell := i.factory.config.ToolsChanged; tell != nil {
			tell(ctx, i.build.SessionID)
		}
	}
}

// listed puts a list into force. It reports whether the list has to be fetched again.
func (i *instance) listed(s *seat, list []tool.Tool, err error) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil && i.place == s {
		i.list.Store(&list)
	}
	again := s.again && i.place == s
	s.again, s.fetching = false, again
	return again
}

// fetched asks the process for the list of tools and checks it.
func (i *instance) fetched(ctx context.Context, s *seat) ([]tool.Tool, error) {
	answer, err := put[list[wireTool]](ctx, s, "tool/list", i.factory.config.Deadlines.State, 0, nil, func(s *seat, u until) any {
		return struct {
			of
			until
		}{i.of(s), u}
	})
	if err != nil {
		return nil, err
	}
	tools := []tool.Tool{}
	for _, t := range answer.Data {
		tools = append(tools, t.tool())
	}
	if err := checkTools(tools); err != nil {
		return nil, s.life.fail(Protocol, fmt.Errorf("tool/list: %w", err))
	}
	return tools, nil
}
