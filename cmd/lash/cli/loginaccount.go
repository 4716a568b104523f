package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providersetup"
	"lashd/engine/provider/chatgpt"
)

// account logs a person in and stores the login. A running daemon reads it from the store.
func (c loginCommand) account(ctx context.Context, e *daemon.Environment, in *bufio.Reader) error {
	if c.BaseURL != "" {
		return console.Exit(console.ExitUsage, fmt.Errorf("--base-url is for keys; set base_url in [providers.%s] of config.toml", c.Provider))
	}
	setup := providersetup.Setup{Home: e.Home}
	server, err := setup.LoginServer(c.Provider)
	if err != nil {
		return err
	}
	tokens, err := c.tokens(ctx, server, in)
	if err != nil {
		return err
	}
	place, err := setup.SetLogin(ctx, c.Provider, tokens)
	if err != nil {
		return err
	}
	return tell(e, stored("logged in to "+providersetup.Title(c.Provider)+"; the login is stored in", place, c.Provider))
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
	fmt.Fprintf(os.Stderr, "Open this address in a browser and log in:\n\n%s\n\n", login.URL)
	defer c.open(login.URL)()
	fmt.Fprintf(os.Stderr, "The browser then opens a page at %s that it cannot load.\nPaste the address of that page here: ", login.Redirect)
	address, err := orDone(ctx, func() (string, error) {
		return bufio.NewReader(io.LimitReader(in, providersetup.MaxPasted)).ReadString('\n')
	})
	if errors.Is(err, context.Canceled) {
		return chatgpt.Tokens{}, err
	}
	if err != nil && address == "" {
		return chatgpt.Tokens{}, unread("no address was pasted; log in again, and paste the address of the page that the browser could not load", err)
	}
	return login.Finish(ctx, address)
}

// open opens the address of a login in the browser, and says until done is called if the browser does not open after all.
func (c loginCommand) open(address string) (done func()) {
	if c.NoBrowser {
		return func() {}
	}
	failed, over := make(chan error, 1), make(chan struct{})
	openAndSay(address, failed)
	go func() {
		select {
		case err := <-failed:
			sayNotOpened(err)
		case <-over:
		}
	}()
	return func() { close(over) }
}
