// Package lashd embeds the database schema. Go can embed only files below the package, so it is at the root of the module.
package lashd

import "embed"

// Schema is schema.sql: the statements that create an empty database with the newest schema.
//
//go:embed schema.sql
var Schema string

// Migrations has the files migrations/000N.sql. Each of them turns schema N-1 into schema N.
//
//go:embed migrations
var Migrations embed.FS
