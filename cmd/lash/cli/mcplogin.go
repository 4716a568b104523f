package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// whichServer selects an MCP server for a login.
type whichServer struct {
	Name   string `arg:"" help:"Name of the server."`
	Plugin string `help:"Plugin that has the server; needed if several have one of that name."`
}

// params returns the parameters for the daemon. Servers of the plugins of the current directory count too.
func (w whichServer) params() (protocol.MCPServerParams, error) {
	cwd, err := os.Getwd()
	return protocol.MCPServerParams{Server: w.Name, Plugin: w.Plugin, Cwd: cwd}, err
}

// mcpLoginCommand implements lash mcp login.
type mcpLoginCommand struct {
	whichServer
	Paste     bool `help:"Open no port: paste the address that the browser opens at the end."`
	NoBrowser bool `help:"Do not open the browser."`
}

// Help is shown by --help.
func (mcpLoginCommand) Help() string {
	return `Shows which servers take part in the login, and the address at which you log in. lash opens it in your browser, but not over SSH, without a
desktop, or if the servers give reason for a warning. The browser then reports to lash, which listens on a port of this machine until the login has ended.
If the browser runs on another machine, paste the address of the page that it cannot load.

lashd keeps the tokens in the system's keyring or, without one, in a file that only you can read. It renews them.

Example: lash mcp login docs`
}

// Run logs in. The daemon has all secrets of the login; lash passes on the address that the browser opened.
func (c mcpLoginCommand) Run(ctx context.Context, e *daemon.Environment) error {
	server, err := c.params()
	if err != nil {
		return err
	}
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	p := protocol.MCPLoginParams{MCPServerParams: server}
	if listener != nil {
		defer listener.Close()
		p.Redirect = "http://" + listener.Addr().String() + "/callback"
	}
	var login protocol.MCPLoginResult
	if err := e.Ask(ctx, "mcp/login", p, &login); err != nil {
		return err
	}
	address, err := c.address(ctx, listener, login)
	if err != nil {
		return errors.Join(err, e.Ask(context.WithoutCancel(ctx), "mcp/cancelLogin", protocol.MCPCancelLoginParams{LoginID: login.LoginID}, &protocol.Empty{}))
	}
	if err := e.Ask(ctx, "mcp/finishLogin", protocol.MCPFinishLoginParams{LoginID: login.LoginID, Address: address}, &protocol.Empty{}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(console.Stdout, "Logged in to %s.\n", c.Name)
	return err
}

// listen opens a port of this machine for the browser; nil with --paste.
func (c mcpLoginCommand) listen(ctx context.Context) (net.Listener, error) {
	if c.Paste {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for the browser: %w; run lash mcp login --paste %s", err, c.Name)
	}
	return listener, nil
}

// address shows where to log in and returns the address that the browser opened, which the browser reports or the person pastes.
func (c mcpLoginCommand) address(ctx context.Context, listener net.Listener, login protocol.MCPLoginResult) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Fprintf(os.Stderr, "%s\n\n", console.Printable(login.Parties.String()))
	fmt.Fprintf(os.Stderr, "Open this address in a browser and log in:\n\n%s\n\n", console.Printable(login.URL))
	failed := make(chan error, 1)
	c.open(login, failed)
	reported := make(chan string, 1)
	if listener != nil {
		server := &http.Server{Handler: callbackHandler(login.URL, reported), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
		go server.Serve(listener) // it ends with the listener
		defer shutDown(server)
		fmt.Fprintf(os.Stderr, "If the browser runs on another machine, it then opens a page at %s that it cannot load.\nPaste the address of that page here, or wait: ", login.Redirect)
	} else {
		fmt.Fprintf(os.Stderr, "The browser then opens a page at %s that it cannot load.\nPaste the address of that page here: ", login.Redirect)
	}
	pasted := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(io.LimitReader(os.Stdin, 64<<10))
		for in.Scan() && strings.TrimSpace(in.Text()) == "" {
		}
		pasted <- strings.TrimSpace(in.Text())
	}()
	for {
		select {
		case address := <-reported:
			fmt.Fprintln(os.Stderr)
			return address, nil
		case address := <-pasted:
			switch {
			case address != "":
				return address, nil
			case listener == nil:
				return "", errors.New("no address was pasted; log in again, and paste the address of the page that the browser could not load")
			}
			pasted = nil // stdin has ended; the browser can still report
		case err := <-failed:
			sayNotOpened(err)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// open opens the address of a login in the browser and says so, unless the person should look at the servers first.
func (c mcpLoginCommand) open(login protocol.MCPLoginResult, failed chan<- error) {
	if c.NoBrowser || login.Parties.Warning != "" {
		return
	}
	openAndSay(login.URL, failed)
}

// shutDown lets the browser read its page, for a moment.
func shutDown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx) // the process ends soon, in any case
}

// callbackHandler takes the request of the browser after the login at an address. Only a request with the state of that address counts.
func callbackHandler(login string, reported chan<- string) http.Handler {
	state := ""
	if u, err := url.Parse(login); err == nil {
		state = u.Query().Get("state")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if r.Method != http.MethodGet || r.URL.Path != "/callback" || state == "" || r.URL.Query().Get("state") != state {
			http.Error(w, "This is not the login that lash waits for.", http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, "lash has received the login. You can close this page; the terminal shows the outcome.")
		select {
		case reported <- "http://" + r.Host + r.URL.RequestURI():
		default: // the browser opened the page again
		}
	})
}

// mcpLogoutCommand implements lash mcp logout.
type mcpLogoutCommand struct{ whichServer }

// Help is shown by --help.
func (mcpLogoutCommand) Help() string {
	return `Deletes the tokens of a login from the keyring or the file. The server still knows them until they expire; to revoke them, use the
settings of your account there.

Example: lash mcp logout docs`
}

// Run deletes the login.
func (c mcpLogoutCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p, err := c.params()
	if err != nil {
		return err
	}
	var r protocol.MCPLogoutResult
	if err := e.Ask(ctx, "mcp/logout", p, &r); err != nil {
		return err
	}
	if !r.Had {
		_, err = fmt.Fprintf(console.Stdout, "There was no login to %s.\n", c.Name)
		return err
	}
	_, err = fmt.Fprintf(console.Stdout, "Logged out of %s.\n", c.Name)
	return err
}
