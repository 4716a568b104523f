#!/bin/sh
echo "fields of $1: surname, town"
