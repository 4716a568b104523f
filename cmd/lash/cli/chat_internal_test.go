package cli

import (
	"errors"
	"net"
	"testing"

	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/chat"
	"lashd/rpc/client"
)

func TestChatEndsWhileItWaits(t *testing.T) {
	t.Run("part/12 a chat that ends while a command begins to wait for events loses only the connection", func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		s := &chatSession{follower: follower{plugins: newPluginWatch()}}
		s.link, s.news = &daemon.Link{Client: client.New(t.Context(), here, nil, nil)}, client.NewInbox(0)
		waits := make(chan error)
		go func() {
			_, err := s.Next(t.Context())
			waits <- err
		}()
		s.close()
		s.close()
		if err := <-waits; !errors.Is(err, chat.ErrGone) {
			t.Errorf("it returns %v", err)
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, chat.ErrGone) {
			t.Errorf("later it returns %v", err)
		}
	})
}
