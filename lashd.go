// Package lashd holds the one thing that must lie at the root of the module: the database schema.
package lashd

import "embed"

// Schema is the newest shape of the database, as schema.sql states it.
//
//go:embed schema.sql
var Schema string

// Migrations holds migrations/000N.sql, each of which turns schema N-1 into schema N.
//
//go:embed migrations
var Migrations embed.FS
