//! Clients that ask, and do not read the answers.

use crate::http2;
use crate::support::{Server, TestStore, token, with_link};
use axum::body::Bytes;
use axum::http::{Request, Response};
use h2::RecvStream;
use h2::client::SendRequest;
use slicewise_api::Tenant;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Runtime;

fn address(server: &Server) -> SocketAddr {
    server.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Asks for slices on a connection; the answer without its body.
async fn ask(
    connection: &mut SendRequest<Bytes>,
    server: &Server,
    token: &str,
) -> Result<Response<RecvStream>, h2::Error> {
    let request = Request::get(format!("{}/v1/slices", server.url));
    let request = request.header("authorization", format!("Bearer {token}"));
    let ready = connection.clone().ready().await?;
    *connection = ready;
    let (answer, _) = connection.send_request(request.body(()).unwrap(), true)?;
    answer.await
}

#[test]
fn answers_that_are_not_read_keep_their_places_and_leave_those_of_others() {
    let store = TestStore::sqlite();
    let (server, open) = with_link(&store);
    for tenant in ["red", "blue"] {
        open.put_tenant(tenant, &Tenant::default()).unwrap();
    }
    let red = token(&store, "red", "tenant:red");
    let blue = server.client_of(&token(&store, "blue", "tenant:blue"));
    Runtime::new().unwrap().block_on(async {
        let mut statuses = Vec::new();
        let mut held = Vec::new();
        for _ in 0..3 {
            let mut connection = http2::connect_without_window(address(&server)).await;
            for _ in 0..50 {
                let answer = ask(&mut connection, &server, &red).await.unwrap();
                statuses.push(answer.status().as_u16());
                held.push(answer);
            }
        }
        let served = statuses.iter().filter(|&&status| status == 200).count();
        let refused = statuses.iter().filter(|&&status| status == 429).count();
        assert_eq!((served, refused), (128, 22), "those of one party");
        blue.slices(&slicewise_api::SliceQuery::default()).unwrap();
        // Who takes its answers has its places again.
        held.clear();
        let mut reading = http2::connect(address(&server), None).await;
        let mut answer = ask(&mut reading, &server, &red).await.unwrap();
        while answer.status() == 429 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            answer = ask(&mut reading, &server, &red).await.unwrap();
        }
        assert_eq!(answer.status(), 200);
    });
}

#[test]
fn a_connection_of_which_nothing_is_taken_is_closed() {
    let store = TestStore::sqlite();
    let (server, _open) = with_link(&store);
    Runtime::new().unwrap().block_on(async {
        let mut connection = http2::connect_without_window(address(&server)).await;
        // A refusal waits just as an answer does.
        let answer = ask(&mut connection, &server, "unknown").await.unwrap();
        assert_eq!(answer.status(), 401);
        let ended = async { answer.into_body().data().await };
        let ended = tokio::time::timeout(Duration::from_secs(120), ended).await;
        let ended = ended.expect("it ends, although the client answers pings");
        assert!(ended.is_none_or(|ended| ended.is_err()));
    });
}

#[test]
fn refusals_that_are_not_read_are_limited_by_closing_their_connection() {
    let store = TestStore::sqlite();
    let (server, _open) = with_link(&store);
    Runtime::new().unwrap().block_on(async {
        let mut open = Vec::new();
        for _ in 0..30 {
            let mut connection = http2::connect_without_window(address(&server)).await;
            let mut held = Vec::new();
            while held.len() < 50 {
                match ask(&mut connection, &server, "unknown").await {
                    Ok(answer) => held.push(answer),
                    Err(_) => break,
                }
            }
            open.push(held);
        }
        let whole = open.iter().filter(|held| held.len() == 50).count();
        assert_eq!(whole, 20, "1,024 places; the others were closed");
    });
}

#[test]
fn a_connection_outlives_bodies_that_no_handler_reads() {
    let store = TestStore::sqlite();
    let server = Server::start(&store);
    let mut connection = std::net::TcpStream::connect(address(&server)).unwrap();
    let patience = Some(Duration::from_secs(60));
    connection.set_read_timeout(patience).unwrap();
    let large = "x".repeat(1 << 20);
    let cases = [
        (
            "GET /openapi.json",
            "Transfer-Encoding: chunked",
            "0\r\n\r\n",
            200,
        ),
        (
            "POST /v1/slices/x/purge",
            "Transfer-Encoding: chunked",
            "0\r\n\r\n",
            404,
        ),
        ("PUT /v1/slices/x", "Content-Length: 1048576", &large, 415),
        ("GET /healthz", "X: y", "", 200),
    ];
    for (line, header, body, status) in cases {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\n{header}\r\n\r\n",
            address(&server)
        );
        connection.write_all(head.as_bytes()).unwrap();
        // Later than the handler has answered.
        std::thread::sleep(Duration::from_millis(200));
        connection.write_all(body.as_bytes()).unwrap();
        let (answered, bytes) = answer_on(&connection);
        assert_eq!(answered, status, "{line}");
        assert!(line != "GET /openapi.json" || bytes > 100_000, "{bytes}");
    }
}

/// Status and bytes of the next answer.
fn answer_on(connection: &std::net::TcpStream) -> (u16, usize) {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut count = 0;
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(length) = line.strip_prefix("content-length: ") {
            count = length.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; count]).unwrap();
    (status, count)
}
