# Varnish cannot read a folder. What it does best stands for it: answers from its cache, in front of
# the bench's application.
vcl 4.1;

backend application {
    .host = "127.0.0.1";
    .port = "@ORIGIN_PORT@";
}

sub vcl_recv {
    if (req.url ~ "^/r/") {
        return (synth(302));
    }
    return (hash);
}

sub vcl_synth {
    if (resp.status == 302) {
        set resp.http.Location = "http://helper1.example.net" + req.url;
        set resp.body = "";
        return (deliver);
    }
}

sub vcl_backend_response {
    set beresp.ttl = 1h;
}
