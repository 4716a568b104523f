package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providers"
	"lashd/engine/provider/chatgpt"
)

// account logs a person in and stores the login. A running daemon reads it from the store.
func (c loginCommand) account(ctx context.Context, e *daemon.Environment, in *bufio.Reader) error {
	cfg, err := config.Load(e.Home)
	if err != nil {
		return err
	}
	tokens, err := c.tokens(ctx, loginServer(cfg, c.Provider), in)
	if err != nil {
		return err
	}
	store := config.OpenKeySources(e.Home, cfg, "").Store
	place, err := store.Set(ctx, c.Provider, tokens.Secret())
	if err != nil {
		return err
	}
	return tell(e, stored("logged in to "+titleOf(c.Provider)+"; the login is stored in", place, c.Provider))
}

// loginServer returns the server that logs people in to a provider.
func loginServer(c config.Config, name string) *chatgpt.Server {
	if issuer := c.Providers[name].Login; issuer != "" {
		return chatgpt.NewServer(issuer)
	}
	preset, _ := providers.PresetOf(name)
	return chatgpt.NewServer(preset.Login)
}

// tokens shows the person where to log in, and waits for the address that the browser opened or until the code was entered.
func (c loginCommand) tokens(ctx context.Context, server *chatgpt.Server, in *bufio.Reader) (chatgpt.Tokens, error) {
	if c.Device {
		device, err := server.BeginDevice(ctx)
		if err != nil {
			return chatgpt.Tokens{}, err
		}
		fmt.Fprintf(os.Stderr, "Open %s on any device, log in and enter the code %s\nEnter the code only if you started this login yourself.\n", device.URL, device.Code)
		return device.Wait(ctx)
	}
	login := server.Begin()
	fmt.Fprintf(os.Stderr, "Open this address in a browser and log in:\n\n%s\n\nThe browser then opens a page at %s that it cannot load.\nPaste the address of that page here: ", login.URL, login.Redirect)
	address, err := orDone(ctx, func() (string, error) { return bufio.NewReader(io.LimitReader(in, mostPasted)).ReadString('\n') })
	if errors.Is(err, context.Canceled) {
		return chatgpt.Tokens{}, err
	}
	if err != nil && address == "" {
		return chatgpt.Tokens{}, errors.Join(errors.New("no address was pasted"), err)
	}
	return login.Finish(ctx, address)
}
