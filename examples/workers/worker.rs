// A worker in Rust with nothing but its standard library, one job at a time:
//     rustc -O worker.rs && DUETIME_HOST=127.0.0.1:8080 DUETIME_KEY=dt_... ./worker
// The protocol: docs/workers-in-any-language.md
use std::env::var;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

struct Job { id: String, attempt: String, stop: bool }
type Current = Arc<Mutex<Option<Job>>>;

/// The first field of this name. Enough for these answers; a real program uses a JSON library.
fn field(json: &str, name: &str) -> Option<String> {
    let value = json[json.find(&format!("\"{name}\":"))? + name.len() + 3..].trim_start();
    let text = value.strip_prefix('"');
    let end = if text.is_some() { '"' } else { ',' };
    Some(text.unwrap_or(value).split([end, '}', ']']).next()?.to_string())
}

fn call(path: &str, body: &str) -> Result<String, String> {
    let host = var("DUETIME_HOST").unwrap_or("127.0.0.1:8080".into());
    let key = var("DUETIME_KEY").map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!("POST /api/v1/workers{path} HTTP/1.1\r\nHost: {host}\r\n{key}Connection: close\r\n");
    let sent = format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut answer = String::new();
    let mut stream = TcpStream::connect(&host).map_err(|problem| problem.to_string())?;
    stream.write_all(sent.as_bytes()).map_err(|problem| problem.to_string())?;
    stream.read_to_string(&mut answer).map_err(|problem| problem.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is cut off")?;
    if head.starts_with("HTTP/1.1 2") { Ok(body.to_string()) } else { Err(body.to_string()) }
}

fn join() -> Result<(String, Duration), String> {
    let lease = var("DUETIME_LEASE").unwrap_or("30s".into());
    let tasks = r#"[{"name": "number.square"}, {"name": "wait.for"}]"#;
    let joined = call("", &format!(r#"{{"name": "rust", "lease": "{lease}", "tasks": {tasks}}}"#))?;
    let seconds = field(&joined, "heartbeat_seconds").and_then(|text| text.parse().ok()).ok_or("no interval")?;
    let worker = field(&joined, "worker").ok_or("no worker")?;
    println!("worker {worker} waits for jobs");
    Ok((worker, Duration::from_secs_f64(seconds)))
}

/// Extends the lease until the service no longer knows the worker.
fn beat(worker: &str, interval: Duration, current: &Current) {
    loop {
        let named = current.lock().unwrap().as_ref().map(|job| format!(r#"{{"id": "{}", "attempt": {}}}"#, job.id, job.attempt));
        let body = format!(r#"{{"jobs": [{}]}}"#, named.unwrap_or_default());
        match call(&format!("/{worker}/heartbeat"), &body) {
            Err(problem) if problem.contains("worker_not_found") => return,
            Ok(reply) => if let (Some(id), Some(job)) = (field(&reply, "id"), current.lock().unwrap().as_mut()) {
                job.stop |= id == job.id;
            },
            Err(problem) => eprintln!("{problem}"),
        }
        sleep(interval);
    }
}

/// The result as JSON, or what went wrong.
fn run(task: &str, payload: &str, current: &Current) -> Result<String, String> {
    let number = |name: &str| field(payload, name).and_then(|text| text.parse::<f64>().ok()).ok_or(format!("no {name}"));
    if task == "number.square" { return number("n").map(|n| (n * n).to_string()); }
    for _ in 0..(number("seconds")? * 20.0) as u64 {
        if current.lock().unwrap().as_ref().is_some_and(|job| job.stop) { return Err("stopped".into()); }
        sleep(Duration::from_millis(50));
    }
    Ok("null".into())
}

fn work(worker: &str, current: &Current) -> Result<(), String> {
    let claimed = call(&format!("/{worker}/claim"), r#"{"wait": "20s"}"#)?;
    let Some(id) = field(&claimed, "id") else { return Ok(()) };
    let (attempt, task) = (field(&claimed, "attempt").unwrap(), field(&claimed, "task").unwrap());
    *current.lock().unwrap() = Some(Job { id: id.clone(), attempt: attempt.clone(), stop: false });
    let (verb, end) = match run(&task, &claimed, current) {
        Ok(result) => ("complete", format!(r#""result": {result}"#)),
        Err(problem) => ("fail", format!(r#""error": {{"message": {problem:?}}}"#)),
    };
    let report = format!(r#"{{"jobs": [{{"id": "{id}", "attempt": {attempt}, {end}}}]}}"#);
    while let Err(problem) = call(&format!("/{worker}/{verb}"), &report) { // the job is named in heartbeats until its report is answered
        if problem.contains("worker_not_found") { break; }
        sleep(Duration::from_millis(500));
    }
    *current.lock().unwrap() = None;
    Ok(())
}

fn main() {
    loop {
        let Ok((worker, interval)) = join() else { sleep(Duration::from_secs(1)); continue };
        let current = Current::default();
        let beating = spawn({ let (worker, current) = (worker.clone(), current.clone()); move || beat(&worker, interval, &current) });
        while !beating.is_finished() { // afterwards its lease has ended: it joins again
            if let Err(problem) = work(&worker, &current) { eprintln!("{problem}"); sleep(Duration::from_millis(500)); }
        }
    }
}
