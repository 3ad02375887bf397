//! One connection through the proxy: two pumps that obey the plan.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use super::{Cut, Direction, Shared};

/// Carries bytes both ways until both sides have ended, or a cut ends it for both.
pub(super) async fn forward(mut client: TcpStream, target: SocketAddr, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect(target).await else {
        end(&[&client], Cut::Reset);
        return;
    };
    // A proxy that waits for more bytes would change the timing that a test asks for. A socket that refuses the option still works.
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let mut plan = shared.plan.subscribe();
    let generation = plan.borrow().generation;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let pumps = async {
        tokio::try_join!(
            pump(&mut from_client, &mut to_server, Direction::ToServer, &shared),
            pump(&mut from_server, &mut to_client, Direction::ToClient, &shared),
        )
    };
    let how = tokio::select! {
        done = pumps => match done {
            Ok(((), ())) => Cut::Close,
            Err(how) => how,
        },
        told = plan.wait_for(|plan| plan.generation != generation) => told.map_or(Cut::Close, |plan| plan.how),
    };
    end(&[&client, &server], how);
}

/// Prepares the sockets for the close that dropping them brings.
fn end(sockets: &[&TcpStream], how: Cut) {
    match how {
        Cut::Close => {}
        // A socket that refuses the option has been reset by its other side already.
        Cut::Reset => sockets.iter().for_each(|socket| {
            socket.set_zero_linger().ok();
        }),
    }
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    direction: Direction,
    shared: &Shared,
) -> Result<(), Cut> {
    let way = direction as usize;
    let mut buffer = vec![0_u8; 16 * 1024];
    let mut plan = shared.plan.subscribe();
    loop {
        let read = from.read(&mut buffer).await.map_err(|_reset| Cut::Reset)?;
        if read == 0 {
            // The other side may have reset meanwhile, and then has nothing to be told.
            to.shutdown().await.ok();
            return Ok(());
        }
        let fault = plan.borrow().faults[way];
        if fault.hold {
            shared.note(|seen| seen.held[way] += 1);
            let released = plan.wait_for(|plan| !plan.faults[way].hold).await.is_ok();
            shared.note(|seen| seen.held[way] -= 1);
            if !released {
                return Err(Cut::Close);
            }
        }
        if !fault.delay.is_zero() {
            tokio::time::sleep(fault.delay).await;
        }
        let (allowed, cut) = take_budget(shared, way, read);
        to.write_all(&buffer[..allowed]).await.map_err(|_reset| Cut::Reset)?;
        shared.note(|seen| seen.passed[way] += allowed as u64);
        if let Some(how) = cut {
            return Err(how);
        }
    }
}

/// How much of `wanted` may pass, and the cut that follows. Taken from the plan, so that one cut hits one connection.
fn take_budget(shared: &Shared, way: usize, wanted: usize) -> (usize, Option<Cut>) {
    let mut taken = (wanted, None);
    shared.plan.send_if_modified(|plan| {
        let fault = &mut plan.faults[way];
        if let Some((left, how)) = fault.cut {
            let allowed = usize::try_from(left).unwrap_or(usize::MAX).min(wanted);
            let left = left - allowed as u64;
            fault.cut = (left > 0).then_some((left, how));
            taken = (allowed, (left == 0).then_some(how));
        }
        // A smaller budget is nothing that another connection waits for.
        false
    });
    taken
}
