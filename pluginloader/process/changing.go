package process

import (
	"context"
	"fmt"

	"lashd/engine/tool"
)

// toolsChanged hears that the plugin offers other tools. The list is asked for once more if it changes meanwhile.
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

// fetch asks for the list until it stays the same. One that fails leaves the tools as they were.
func (i *instance) fetch(ctx context.Context, s *seat) {
	for again := true; again; {
		list, err := i.fetched(ctx, s)
		if again = i.listed(s, list, err); err != nil {
			i.factory.config.Log.Warn("the plugin's list of tools is not taken", "session", i.build.SessionID, "error", err)
		} else if tell := i.factory.config.ToolsChanged; tell != nil {
			tell(ctx, i.build.SessionID)
		}
	}
}

// listed puts a list in force, and tells whether there is another one by now.
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
