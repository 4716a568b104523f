module reviewer

go 1.26
